"""The AWS adapters: DynamoDB, SQS, S3, Lambda and Chalice."""
