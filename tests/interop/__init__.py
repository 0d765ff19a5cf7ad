"""Clients and a broker not written here, against ours; see `README.md` in this folder."""
