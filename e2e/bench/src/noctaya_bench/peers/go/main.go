// A reverse proxy as a Go programmer would tune it: the yardstick of the bench, nothing more.
package main

import (
	"log"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"time"
)

func main() {
	backend, err := url.Parse(os.Args[2])
	if err != nil {
		log.Fatal(err)
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.Proxy = nil
	transport.DisableCompression = true
	transport.MaxIdleConns = 4096
	transport.MaxIdleConnsPerHost = 4096
	proxy := &httputil.ReverseProxy{
		Rewrite: func(request *httputil.ProxyRequest) {
			request.SetURL(backend)
			request.SetXForwarded()
		},
		Transport:     transport,
		FlushInterval: -1,
	}
	server := &http.Server{Addr: os.Args[1], Handler: proxy, ReadHeaderTimeout: 10 * time.Second}
	log.Fatal(server.ListenAndServe())
}
