"""What shapes of tensors tell of a call: its operations, its work, and a product that it is."""
