module github.com/proa-dev/proa/samples/thread-dump

go 1.24
