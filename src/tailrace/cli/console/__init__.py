"""`tailrace console`: a web page for a cluster. Each of its answers is what a command prints with --json.

browser ─► http_server.py ─► site.py ─┬─► static/  (the page)
                                      └─► command_table.py (path ─► words) ─► command_process.py ─► `tailrace …`

A command runs in a process of its own, with the credentials of the visitor: the cluster authorizes it as it authorizes
any client, and a command that takes too long or too much memory does not affect others. See
docs/decisions/0038-console.md.

console_arguments.py    the options of `console`, and those of `serve --console`
console.py              `tailrace console`: checks the options and runs the server
beside_broker.py        `serve --console`: the console as a child process of a broker
console_settings.py     ConsoleSettings: where to listen, what to show, what is allowed
http_server.py          connections: their number, time and sizes are bounded
http_message.py         Request and Response
site.py                 answers a request: the page, its files, login, commands
visitors.py             who is logged in; refuses requests of other sites
login_attempts.py       LoginAttempts: limits failed logins of each address
command_table.py        the commands that the page may run, and their parameters
shared_answers.py       pages that ask the same share one command
lag_history.py          LagHistory: the lag of groups over the last day
command_process.py      runs a command in a process of its own
static_files.py         the files of the page
static/                 the page: HTML, CSS and JavaScript modules, as they are served
"""
