"""The report: an HTML page and a terminal summary, made from the tables of a lake.

    lake --gathering--> Report (plain values) --page--> HTML
                                              --summary--> terminal, JSON

`gathering` asks the questions (SQL over views, one module for each kind of question), `model`
holds the answers, `advice` says what to do first, `drawing` and `picture` know how marks are made
and nothing of GPUs, `sections` lays each answer out. The page loads nothing: styles, script,
pictures and data are inside it.
"""
