"""Language model back ends, one file each, and the guard around every call to them."""
