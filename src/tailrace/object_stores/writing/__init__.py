"""Writes objects to S3 and Google Cloud Storage. It uses the standard library only, so a broker needs no pyarrow.

An object appears when it is complete, and never replaces another one. Every request has a time limit, failures are
retried a bounded number of times, and an upload that fails is ended in the store.

open_blobs.py       opens the objects of an address
s3_blobs.py         S3Blobs: write, read and delete objects of a bucket
s3_requests.py      S3Requests: signed requests, and errors as sentences
aws_signature.py    signs a request
aws_credentials.py  finds credentials like Amazon's tools
gcs_blobs.py        GcsBlobs: the same for Google's store
google_tokens.py    finds tokens like Google's tools
web_requests.py     WebRequests: HTTP requests with a time limit and retries
"""
