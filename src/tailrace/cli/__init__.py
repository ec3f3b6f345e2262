"""The command line. This package may import every other one. A command is imported when it runs, so `--help` is quick.

main.py ─► parser.py ─► *_arguments.py (options) ─► "module:function" ─► the command's module ─► output.py

main.py          runs the parsed command; reports an error as one sentence and an exit status
parser.py        all commands with their options and help
options.py       options and value types that several commands share
connecting.py    connects to a cluster for a command
errors.py        CommandError: ends a command with a message and an exit status
output.py        tables, sizes and times for people; JSON for programs
progress_bar.py  a progress bar on a terminal
screen.py        a terminal screen that is repainted in place
tour.py          `tailrace tour`
admin/           `topics`, `configs`, `offsets`, `groups`, `transactions`
cluster/         `cluster up`, `cluster status`, `migrate`
jobs/            `job`: one module per verb
log/             `log`: one module per verb
records/         `produce` and `consume`
serving/         `serve`, `top` and `explain fetch`
"""
