"""Regular expressions in the syntax of RE2, matched against names of topics in linear time.

Members send them (KIP-848, `SubscribedTopicRegex`), and a broker of one thread must not be held up
by whatever they send. Python's `re` backtracks: `(a+)+` on an unlucky name takes longer than the
universe has left. So the expression becomes an automaton, as in RE2 itself, that reads each
character of a name once.

A name is made of 65 characters (`characters.py`), so a class is a small set, and what can only
match other characters never matches. A whole name must match, so greed does not matter, and
neither do the flags m, s and U.
"""
