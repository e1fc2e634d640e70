-- Each owner finds their badges by the digest of their secret.

INSERT OR IGNORE INTO items (pk, sk, attributes)
SELECT 'KEY#' || json_extract(attributes, '$.digest'), 'BADGE#' || substr(pk, 6), '{}'
FROM items WHERE sk = 'OWNER' AND json_extract(attributes, '$.digest') IS NOT NULL;
