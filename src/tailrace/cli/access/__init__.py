"""Commands about access to a cluster, through `client/access/`.

acls_arguments.py    options of `acls`
acls.py              `tailrace acls`: list, add, remove
password_input.py    reads a password from a file, from standard input or from a prompt
quotas_arguments.py  options of `quotas`
quotas.py            `tailrace quotas`: list, set, remove
users_arguments.py   options of `users`
users.py             `tailrace users`: list, set, remove SCRAM credentials
"""
