import { describe, expect, it } from 'vitest';
import { classify } from '../../../src/features/access/limit-requests.js';

describe('which limits a request counts against', () => {
  it.each([
    ['POST', '/api/userAuth/login', 'sign-in'],
    ['POST', '/api/userAuth/login/', 'sign-in'],
    ['POST', '/api/userAuth/l%6fgin', 'sign-in'],
    ['POST', '/api/userAuth/social/exchange', 'sign-in'],
    ['GET', '/api/userAuth/social/google/start', 'sign-in'],
    ['POST', '/api/admin/login', 'sign-in'],
    ['POST', '/api/admin/login/', 'sign-in'],
    ['GET', '/api/admin/me', 'operator'],
    ['GET', '/api/projects', 'operator'],
    ['PATCH', '/api/projects/0/keys', 'operator'],
    ['GET', '/api/projectsx', 'plain'],
    ['POST', '/api/userAuth/refresh-token', 'refresh'],
    ['POST', '/api/userAuth/refresh-token/', 'refresh'],
    ['GET', '/api/userAuth/me', 'plain'],
    ['GET', '/api/userAuth/public/ann', 'plain'],
    ['DELETE', '/api/userAuth/identities/google', 'plain'],
    ['GET', '/api/userAuth/public/../login', 'sign-in'],
    ['POST', '/api/mail/webhook', 'free'],
    ['POST', '/api/mail/webhook/x', 'plain'],
    ['GET', '/api/healthy', 'plain'],
    ['GET', '/api/docs', 'free'],
    ['GET', '/api/docs/guides/mail', 'free'],
    ['GET', '/api/openapi.json', 'free'],
    ['GET', '/api/docsx', 'plain'],
    ['GET', '/files/a/b.png', 'free'],
    ['OPTIONS', '/api/userAuth/login', 'free'],
  ])('takes %s %s for %s', (method, path, kind) => {
    expect(classify(method, path)).toBe(kind);
  });
});
