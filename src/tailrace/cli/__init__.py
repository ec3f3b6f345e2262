"""The command line. May import everything. A command is imported only when it runs, so that `--help` is quick.

main.py ─► parser.py ─► *_arguments.py (options) ─► "module:function" ─► the command's module ─► output.py

main.py         runs the command that the parser chose, and turns errors into one sentence and an exit status
parser.py       all commands with their options and help
options.py      options and value types that several commands share
connecting.py   connects to a cluster for a command
errors.py       CommandError: the reason why a command cannot run
output.py       tables, sizes and times for people; JSON for programs
progress.py     a progress bar on a terminal
screen.py       a terminal screen that is repainted in place
tour.py         `tailrace tour`
admin/          `topics`, `configs`, `offsets`, `groups`, `transactions`
cluster/        `cluster up`, `cluster status`, `migrate`
jobs/           `job`: one module per verb
log/            `log`: one module per verb
records/        `produce` and `consume`
serving/        `serve`, `top` and `explain fetch`
"""
