module coil.lab/coredns

go 1.26.8
