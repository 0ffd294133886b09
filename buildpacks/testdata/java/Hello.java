package com.example.with.a.name.so.extended.that.a.manifest.has.to.fold.its.line;

import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;

/** Answers with the memory that Java gives itself, in megabytes. */
public class Hello {
    public static void main(String[] args) throws Exception {
        int port = Integer.parseInt(System.getenv("SERVER_PORT"));
        HttpServer server = HttpServer.create(new InetSocketAddress(port), 0);
        server.createContext("/", exchange -> {
            byte[] text = ("heap " + Runtime.getRuntime().maxMemory() / 1024 / 1024 + " of " + args.length).getBytes();
            exchange.sendResponseHeaders(200, text.length);
            exchange.getResponseBody().write(text);
            exchange.close();
        });
        server.start();
    }
}
