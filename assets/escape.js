export function render({ model }) {
  const heard = (event) => {
    if (event.key === "Escape") model.escaped += 1
  }
  document.addEventListener("keydown", heard)
  model.on("remove", () => document.removeEventListener("keydown", heard))
  return document.createElement("span")
}
