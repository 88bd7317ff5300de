"""What the commands of `redclf` do, one module each."""
