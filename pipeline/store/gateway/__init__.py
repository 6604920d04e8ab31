"""Every statement of the engine, by name and with types.

A function runs one statement on the connection it is given and returns typed rows. It opens no connection, begins no
transaction, tries nothing again and catches nothing: that is its caller's business. Threads with a connection of their
own call with psycopg's (``Wire``), all others with SQLAlchemy's.
"""
