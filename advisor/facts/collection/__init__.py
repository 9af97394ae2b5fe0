"""How the profile was collected: by whom, with which settings, of which ranks."""
