"""What kind of recording it is: what each rank's files say of that, and what follows from all of them together."""
