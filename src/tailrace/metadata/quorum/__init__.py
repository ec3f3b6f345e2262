"""A broker's side of a controller quorum: it follows the metadata log and stays registered."""
