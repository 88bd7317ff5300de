"""How fast, how small and how near to the machine's limit: what `redclf bench` measures."""
