module noctaya.io/pause

go 1.24
