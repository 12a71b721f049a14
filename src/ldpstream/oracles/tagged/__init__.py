"""Reports that end with a tag: a public byte that says which part of the fleet a device is of."""
