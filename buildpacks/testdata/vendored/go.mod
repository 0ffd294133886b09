module example.com/vendored/v2

go 1.26

require example.com/greeting v1.0.0
