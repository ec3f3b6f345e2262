"""The command line. This package may import every other one. A command is imported when it runs, so `--help` is quick.

main.py ─► parsing/parser.py ─► *_arguments.py (options) ─► "module:function" ─► the command's module ─► output.py

main.py             runs the parsed command; reports an error as one sentence and an exit status
errors.py           CommandError: ends a command with a message and an exit status; remedies for missing packages
output.py           tables, sizes and times for people; JSON for programs
tour.py             `tailrace tour`
terminal/           a screen that is repainted, a progress bar
parsing/            all commands with their options and help
connection/         the address, the security settings and the client of a command
access/             `acls`, `users`, `quotas`
admin/              `topics`, `configs`, `offsets`, `groups`, `transactions`
console/            `console`: a web page
cluster/            `cluster up`, `cluster status`, `reassign`, `elect`, `migrate`
jobs/               `job`: one module per verb
log/                `log`: one module per verb
records/            `produce` and `consume`
serving/            `serve`, `top` and `explain fetch`
"""
