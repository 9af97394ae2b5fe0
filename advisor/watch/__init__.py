"""`advisor watch`: judges the profiles of a long training as they appear, one after the other, for days."""
