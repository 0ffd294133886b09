import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;

/** Says hello, and how much memory Java gives itself, in megabytes. */
public class Hello {
    public static void main(String[] args) throws Exception {
        HttpServer server = HttpServer.create(new InetSocketAddress(Integer.parseInt(System.getenv("PORT"))), 0);
        server.createContext("/", exchange -> {
            byte[] text = ("java with a heap of " + Runtime.getRuntime().maxMemory() / 1024 / 1024).getBytes();
            exchange.sendResponseHeaders(200, text.length);
            exchange.getResponseBody().write(text);
            exchange.close();
        });
        server.start();
    }
}
