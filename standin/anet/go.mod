module github.com/wlynxg/anet

go 1.26
