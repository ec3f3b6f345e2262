"""One module per API, named after it; `api_table.py` lists them."""
