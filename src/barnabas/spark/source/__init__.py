"""The read side: batch and stream readers that plan splits, fetch records and decode them."""
