"""Where a datum came from: weak inverses, verifications, plans and traces."""
