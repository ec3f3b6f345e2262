"""The connection of a command to a cluster: its address, its security settings, and the client.

client_properties.py  security settings of a profile, of --command-config and of -X, with the names of kcat translated
connecting.py         connects to the cluster; turns errors of the client into errors of the command
properties_file.py    reads a properties file
profiles.py           the address of the cluster: --bootstrap, --profile, TAILRACE_BOOTSTRAP or the default
"""
