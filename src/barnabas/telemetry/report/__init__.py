"""The report: an HTML page and a terminal summary, made from the tables of a lake.

    lake --gathering--> Report (plain values) --page--> HTML
                                              --summary--> terminal, JSON

`gathering` runs the queries (SQL over views, one module for each kind of question), `report_model`
has the results, `advice` chooses what to do first, `drawing` and `picture` draw without knowing
about GPUs, `sections` renders each result. The page loads no other files: styles, script, pictures
and data are inside it.
"""
