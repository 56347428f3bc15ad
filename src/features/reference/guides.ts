import { readPackageFile, VERSION } from '../../package.js';
import { escapeHtml, renderPage, renderMarkdown } from './markdown.js';

export const GUIDES_PREFIX = '/api/docs/guides';

interface Guide {
  /** Of the file of Markdown in templates/docs. */
  readonly name: string;
  readonly title: string;
  /** What readers search for and the search shows this page first for; the words of its headings need no entry. */
  readonly words: string;
}

/** The guides in the order in which a reader meets them, by the heading that they are listed under. */
const GUIDE_GROUPS: Readonly<Record<string, readonly Guide[]>> = {
  Start: [
    {
      name: 'getting-started',
      title: 'Getting started',
      words: 'install, quickstart, self-host, node, npm, docker, setup, production',
    },
    { name: 'first-app', title: 'Your first app', words: 'tutorial, example, todo' },
  ],
  Build: [
    {
      name: 'data',
      title: 'Data: create, read, query',
      words:
        'crud, rest, query, filter, sort, pagination, cursor, search, populate, join, aggregation, pipeline, geo, near, count, schema, validation, unique, constraints, field types, case-insensitive',
    },
    {
      name: 'writes',
      title: 'Writes: counters, batches, transactions',
      words:
        'transaction, batch, increment, upsert, bulk, references, relations, on delete, cascade, ttl, expire, idempotency, csv, import, export',
    },
    {
      name: 'auth',
      title: 'Auth: sign-up, login, Google, MFA',
      words:
        'auth, authentication, login, log in, sign in, sign up, signup, google, github, apple, oauth, oidc, social login, magic link, otp, email code, 2fa, mfa, totp, two-factor, second factor, passkey, webauthn, anonymous, guest, invite, invitation, password reset, session, account deletion, gdpr',
    },
    {
      name: 'rules',
      title: 'Access rules and API keys',
      words:
        'rls, row-level security, rules, permissions, roles, access control, authorization, membership, teams, multi-tenant, api keys, publishable key, secret key, cors, field visibility, public, private',
    },
    {
      name: 'realtime',
      title: 'Realtime: change feed and subscriptions',
      words: 'realtime, subscribe, websocket, sse, server-sent events, eventsource, live, live list, latest, polling',
    },
    { name: 'client', title: 'TypeScript client', words: 'openapi, typescript, types, sdk, javascript' },
    { name: 'offline', title: 'Offline', words: 'offline, local-first, sync, indexeddb, pwa, conflicts' },
    { name: 'react', title: 'React, Next.js, React Native', words: 'vue, svelte, expo, ssr, hooks' },
    {
      name: 'own-server',
      title: 'Your own server',
      words: 'server, jwt, refresh token, access token, jwks, verify token, express, backend',
    },
    {
      name: 'files',
      title: 'Files, images and S3 buckets',
      words: 'file upload, upload, images, storage, private files, signed url, s3, r2, minio, bucket, cdn',
    },
    { name: 'email', title: 'Email', words: 'mail, smtp, template, newsletter, resend, sendgrid, outbox' },
    { name: 'webhooks', title: 'Webhooks', words: 'webhook, events, hmac, signature, retry' },
    {
      name: 'own-code',
      title: 'Own code',
      words: 'function, functions, hook, hooks, cron, schedule, triggers, edge functions, cloud functions, server code',
    },
    {
      name: 'declaration',
      title: 'bsvc.yaml: a project as one file',
      words: 'apply, infrastructure as code, ci, yaml',
    },
    { name: 'console', title: 'Console', words: 'dashboard, admin, audit, operators, user interface' },
  ],
  'Deploy and operate': [
    {
      name: 'deploy',
      title: 'Deploy and HTTPS',
      words:
        'deploy, hosting, static files, spa, front end, proxy, nginx, caddy, haproxy, https, tls, ssl, certificate, domain',
    },
    {
      name: 'backup',
      title: 'Backup, restore, upgrade',
      words: 'backup, restore, migrate, upgrade, disaster recovery, repair, damaged',
    },
    {
      name: 'monitoring',
      title: 'Monitoring: metrics, traces, logs',
      words: 'telemetry, prometheus, grafana, opentelemetry, otel, health, alerts, logging',
    },
    {
      name: 'scale',
      title: 'Scale and high availability',
      words: 'scale, redis, cluster, processes, systemd, kubernetes, load balancer, worker',
    },
    { name: 'mongodb', title: 'MongoDB', words: 'replica set, atlas, sharding, database' },
    { name: 'mongodb-for-tests', title: 'A MongoDB for tests', words: 'in-memory mongodb, mongoose, unit tests' },
    {
      name: 'troubleshooting',
      title: 'Troubleshooting',
      words: 'errors, error codes, debug, 401, 403, forbidden, why, not working, faq',
    },
  ],
  Reference: [
    { name: 'commands', title: 'Command line', words: 'cli, commands, terminal' },
    { name: 'settings', title: 'Settings', words: 'environment variables, env, configuration, config' },
    { name: 'limits', title: 'Limits', words: 'rate limit, quota, 429, performance, benchmark, maximum' },
  ],
  'Moving and comparing': [
    {
      name: 'moving',
      title: 'Moving from Supabase, PocketBase and others',
      words: 'pocketbase, supabase, parse, appwrite',
    },
    { name: 'firestore', title: 'From Firestore', words: 'firebase, onsnapshot' },
    {
      name: 'realm',
      title: 'From Realm and App Services',
      words: 'mongodb realm, atlas app services, device sync, rxdb',
    },
    { name: 'instantdb', title: 'From InstantDB', words: 'instant, tanstack db, optimistic' },
    { name: 'migration', title: 'Migration from the hosted service', words: 'hosted, cloud' },
    { name: 'compare', title: 'Compare with other backends', words: 'alternatives, versus, vs, comparison' },
  ],
};

export const GUIDES: readonly Guide[] = Object.values(GUIDE_GROUPS).flat();

/** Links to all guides, the one that is shown marked. `base` is the path before /api, empty at the root. */
export function renderGuideLinks(base: string, shown?: string): string {
  const groups = Object.entries(GUIDE_GROUPS).map(([heading, guides]) => {
    const items = guides.map(({ name, title }) => {
      const mark = name === shown ? ' aria-current="page"' : '';
      return `<li><a href="${base}${GUIDES_PREFIX}/${name}"${mark}>${escapeHtml(title)}</a></li>`;
    });
    return `<p class="chapter">${escapeHtml(heading)}</p>\n<ul>\n${items.join('\n')}\n</ul>`;
  });
  return groups.join('\n');
}

/** A guide as a page of HTML; null for a name that no guide has. `base` is the path before /api, empty at the root. */
export function renderGuide(base: string, name: string): string | null {
  const guide = GUIDES.find((each) => each.name === name);
  if (!guide) return null;
  const text = readPackageFile('templates', 'docs', `${name}.md`);
  return renderPage({
    base,
    title: `${guide.title} · bsvc`,
    brand: `<a href="${base}/api/docs">bsvc <span>guides</span></a> <small>${escapeHtml(VERSION)}</small>`,
    link: { to: '/api/docs', text: 'API reference' },
    navigation: `<nav aria-label="Guides"><details open><summary>Guides</summary>
${renderGuideLinks(base, name)}
</details></nav>`,
    content: `<article>
${renderMarkdown(text, (target) => linkInPage(base, target))}
</article>`,
    kind: 'guide',
  });
}

/** Guides refer to each other by file, as the repository shows them. */
function linkInPage(base: string, target: string): string {
  const guide = /^([\w-]+)\.md(#.*)?$/.exec(target);
  return guide ? `${base}${GUIDES_PREFIX}/${guide[1]}${guide[2] ?? ''}` : target;
}
