"""Games for the record: evaluation, statistics, records and the referee."""
