"""How the data is made: datasets, boxes, pipelines and runs."""
