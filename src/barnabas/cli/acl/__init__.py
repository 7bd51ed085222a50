"""`barnabas acl` and `barnabas role`: what principals may do."""
