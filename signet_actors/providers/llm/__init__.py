"""Back ends that answer a prompt with a text, one file each, and what guards every call to them."""
