"""Records: reading over the wire, filters, views, live tail, export, and sending."""
