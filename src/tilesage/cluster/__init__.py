"""Work on several machines with Ray: evaluation, trials of a sweep, and one network learnt by many.

In come the same orders as for one machine; out go the same results. Ray is imported only when somebody asks for it.
"""
