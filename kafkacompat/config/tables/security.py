"""Who connects and how that is proved: SSL, SASL and delegation tokens.

Name, type, default, allowed values, flags and one line of text; `tables/__init__.py` explains the columns.
"""

TABLE = """
principal.builder.class | class | org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder | | B |
    The class that names a connection's user
connections.max.reauth.ms | long | 0 | | U | How long an authentication holds
delegation.token.secret.key | password | null | | U | The secret that signs delegation tokens
delegation.token.expiry.check.interval.ms | long | 3600000 | 1.. | U | How often expired tokens are looked for
delegation.token.expiry.time.ms | long | 86400000 | 1.. | U | How long a token holds unless it is renewed
delegation.token.max.lifetime.ms | long | 604800000 | 1.. | U | How long a token may be renewed
sasl.enabled.mechanisms | list | GSSAPI | distinct | UB | The SASL mechanisms offered
sasl.mechanism.controller.protocol | string | GSSAPI | | | The mechanism towards controllers
sasl.mechanism.inter.broker.protocol | string | GSSAPI | | UB | The mechanism among brokers
sasl.jaas.config | password | null | | UB | The login modules and their options
sasl.client.callback.handler.class | class | null | | | The class that answers a client login's questions
sasl.login.callback.handler.class | class | null | | U | The class that answers a login's questions
sasl.login.class | class | null | | | The class that logs in
sasl.server.callback.handler.class | class | null | | U | The class that checks the credentials of clients
sasl.server.max.receive.size | int | 524288 | | U | The largest token taken before authentication
sasl.kerberos.kinit.cmd | string | /usr/bin/kinit | | B | The path of kinit
sasl.kerberos.min.time.before.relogin | long | 60000 | | B | The least time between two logins
sasl.kerberos.principal.to.local.rules | list | DEFAULT | distinct | B | How Kerberos principals become user names
sasl.kerberos.service.name | string | null | | B | The Kerberos name of this service
sasl.kerberos.ticket.renew.jitter | double | 0.05 | | B | The random share of the renewal time
sasl.kerberos.ticket.renew.window.factor | double | 0.8 | | B | The share of a ticket's life after which it is renewed
sasl.login.connect.timeout.ms | int | null | | U | How long connecting to the identity provider may take
sasl.login.read.timeout.ms | int | null | | U | How long reading from the identity provider may take
sasl.login.refresh.buffer.seconds | short | 300 | | UB | Time left before expiry when a login is refreshed
sasl.login.refresh.min.period.seconds | short | 60 | | UB | The least time between two refreshes
sasl.login.refresh.window.factor | double | 0.8 | | UB | The share of a login's life after which it is refreshed
sasl.login.refresh.window.jitter | double | 0.05 | | UB | The random share of that time
sasl.login.retry.backoff.ms | long | 100 | | U | The first pause after a failed login
sasl.login.retry.backoff.max.ms | long | 10000 | | U | The longest pause after a failed login
sasl.oauthbearer.assertion.algorithm | string | RS256 | any case: ES256, RS256 | | The algorithm that signs assertions
sasl.oauthbearer.assertion.claim.aud | string | null | | | The audience that assertions claim
sasl.oauthbearer.assertion.claim.exp.seconds | int | 300 | 0..86400 | | How long assertions hold
sasl.oauthbearer.assertion.claim.iss | string | null | | | The issuer that assertions claim
sasl.oauthbearer.assertion.claim.jti.include | boolean | false | | | Assertions carry an id of their own
sasl.oauthbearer.assertion.claim.nbf.seconds | int | 60 | 0..3600 | | How far back assertions hold
sasl.oauthbearer.assertion.claim.sub | string | null | | | The subject that assertions claim
sasl.oauthbearer.assertion.file | string | null | | | A file with a ready assertion
sasl.oauthbearer.assertion.private.key.file | string | null | | | The key that signs assertions
sasl.oauthbearer.assertion.private.key.passphrase | password | null | | | The passphrase of that key
sasl.oauthbearer.assertion.template.file | string | null | | | A file with an assertion's fixed parts
sasl.oauthbearer.client.credentials.client.id | string | null | | U | The client id for the identity provider
sasl.oauthbearer.client.credentials.client.secret | password | null | | U | The secret of that client id
sasl.oauthbearer.clock.skew.seconds | int | 30 | | U | How far two clocks may differ
sasl.oauthbearer.expected.audience | list | | distinct | U | The accepted audiences: a token must name at least one
sasl.oauthbearer.expected.issuer | string | null | | U | The issuer a token must name
sasl.oauthbearer.jwks.endpoint.refresh.ms | long | 3600000 | | U | How often the provider's keys are fetched
sasl.oauthbearer.jwks.endpoint.retry.backoff.ms | long | 100 | | U | The first pause after a failed fetch of keys
sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms | long | 10000 | | U | The longest pause after a failed fetch of keys
sasl.oauthbearer.jwks.endpoint.url | string | null | | U | Where the provider's keys are fetched
sasl.oauthbearer.jwt.retriever.class | class | org.apache.kafka.common.security.oauthbearer.DefaultJwtRetriever | | U |
    The class that fetches tokens
sasl.oauthbearer.jwt.validator.class | class | org.apache.kafka.common.security.oauthbearer.DefaultJwtValidator | | U |
    The class that checks tokens
sasl.oauthbearer.scope | string | null | | U | The scope asked for
sasl.oauthbearer.scope.claim.name | string | scope | | U | The claim that holds the scope
sasl.oauthbearer.sub.claim.name | string | sub | | U | The claim that holds the subject
sasl.oauthbearer.token.endpoint.url | string | null | | U | Where tokens are fetched
ssl.allow.dn.changes | boolean | false | | U | A new certificate may have another name
ssl.allow.san.changes | boolean | false | | U | A new certificate may have other alternative names
ssl.cipher.suites | list | | distinct | UB | The cipher suites offered
ssl.client.auth | string | none | required, requested, none | UB | Whether clients show a certificate
ssl.enabled.protocols | list | TLSv1.2,TLSv1.3 | distinct | UB | The TLS versions offered
ssl.endpoint.identification.algorithm | string | https | | UB | How host names are compared with certificates
ssl.engine.factory.class | class | null | | UB | The class that makes TLS engines
ssl.key.password | password | null | | UB | The password of the key
ssl.keymanager.algorithm | string | SunX509 | | B | The algorithm of the key manager
ssl.keystore.certificate.chain | password | null | | UB | The certificates, as PEM text
ssl.keystore.key | password | null | | UB | The key, as PEM text
ssl.keystore.location | string | null | | UB | The file with key and certificates
ssl.keystore.password | password | null | | UB | The password of that file
ssl.keystore.type | string | JKS | | UB | The format of that file
ssl.principal.mapping.rules | string | DEFAULT | | U | How certificate names become user names
ssl.protocol | string | TLSv1.3 | | B | The TLS version preferred
ssl.provider | string | null | | B | The security provider of TLS
ssl.secure.random.implementation | string | null | | B | The source of random numbers
ssl.trustmanager.algorithm | string | PKIX | | B | The algorithm of the trust manager
ssl.truststore.certificates | password | null | | UB | The trusted certificates, as PEM text
ssl.truststore.location | string | null | | UB | The file with the trusted certificates
ssl.truststore.password | password | null | | UB | The password of that file
ssl.truststore.type | string | JKS | | UB | The format of that file
"""
