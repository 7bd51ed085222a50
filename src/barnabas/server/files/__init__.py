"""Files and the threads that sync, delete and compact them."""
