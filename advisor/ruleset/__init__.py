"""Rules as data: their language, their files, their truth."""
