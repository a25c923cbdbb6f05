"""Side-by-side measurements against other libraries; each file is one command."""
