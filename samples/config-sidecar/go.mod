module github.com/proa-dev/proa/samples/config-sidecar

go 1.24
