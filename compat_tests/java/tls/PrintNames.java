import java.io.FileInputStream;
import java.security.cert.CertificateFactory;
import java.security.cert.X509Certificate;

/** Prints the subject of each certificate that the arguments name, as the broker of Apache Kafka names its user. */
public final class PrintNames {
    public static void main(String[] paths) throws Exception {
        CertificateFactory factory = CertificateFactory.getInstance("X.509");
        StringBuilder names = new StringBuilder();
        for (String path : paths) {
            try (FileInputStream input = new FileInputStream(path)) {
                X509Certificate certificate = (X509Certificate) factory.generateCertificate(input);
                names.append(certificate.getSubjectX500Principal().getName()).append('\0');
            }
        }
        System.out.write(names.toString().getBytes("UTF-8"));
        System.out.flush();
    }
}
