import type { CommandEntry, CommandNode, LoadedCommand } from '../shell/command.js';

export const ROOT_EXAMPLES = [
  'bsvc serve --demo',
  'bsvc project create shop',
  'bsvc collection add posts --project shop --field title:String!',
];

/** A command that a module has alone, or by its name in it. */
const command = (name: string, summary: string, load: CommandEntry['load']): CommandEntry => ({ name, summary, load });
const oneOf =
  <Part extends string>(load: () => Promise<{ default: Record<Part, LoadedCommand> }>, part: NoInfer<Part>) =>
  async (): Promise<{ default: LoadedCommand }> => ({ default: (await load()).default[part] });

/**
 * Every command of bsvc, in the groups of `bsvc --help`. Modules are imported when they run, so that it starts at once.
 */
export const GROUPS: Readonly<Record<string, readonly CommandNode[]>> = {
  Start: [
    command('serve', 'run the API server, with the background worker inside', () => import('./serve.js')),
    command('init', 'write a bsvc.yaml to start from, and a page on request', () => import('./init.js')),
    {
      name: 'project',
      summary: 'projects: one per application',
      examples: ['bsvc project create shop', 'bsvc project list', 'bsvc project update shop --plan pro'],
      commands: [
        command(
          'create',
          'create a project with its first keys',
          oneOf(() => import('./project.js'), 'create'),
        ),
        command(
          'list',
          'list projects',
          oneOf(() => import('./project.js'), 'list'),
        ),
        command(
          'show',
          'show one project',
          oneOf(() => import('./project.js'), 'show'),
        ),
        command(
          'update',
          'change name, plan, allowed domains or limits',
          oneOf(() => import('./project.js'), 'update'),
        ),
        command('export', 'write a project as a bsvc.yaml file', () => import('./project-export.js')),
        command(
          'brief',
          'show a project on one page, for coding agents',
          oneOf(() => import('./project.js'), 'brief'),
        ),
        command(
          'delete',
          'delete a project and everything in it',
          oneOf(() => import('./project.js'), 'remove'),
        ),
        command(
          'usage',
          'show the usage of a project’s limits',
          oneOf(() => import('./project.js'), 'usage'),
        ),
        command(
          'recount',
          'recount the usage of quotas',
          oneOf(() => import('./project.js'), 'recount'),
        ),
      ],
    },
    {
      name: 'key',
      summary: 'API keys of a project',
      examples: ['bsvc key list --project shop', 'bsvc key rotate --project shop --type secret --grace 24h'],
      commands: [
        command(
          'list',
          'list keys by id and last characters',
          oneOf(() => import('./key.js'), 'list'),
        ),
        command(
          'create',
          'create another key, shown once',
          oneOf(() => import('./key.js'), 'create'),
        ),
        command(
          'rotate',
          'create a new key, the old ones expire',
          oneOf(() => import('./key.js'), 'rotate'),
        ),
        command(
          'revoke',
          'revoke a key',
          oneOf(() => import('./key.js'), 'revoke'),
        ),
      ],
    },
    command('apply', 'apply a bsvc.yaml file', () => import('./apply.js')),
    command('console', 'print a one-time sign-in link to the console', () => import('./console.js')),
    command('completion', 'print a completion script for bash, zsh or fish', async () => ({
      default: (await import('./completion.js')).createCompletion(COMMANDS),
    })),
  ],
  Data: [
    {
      name: 'collection',
      summary: 'collections of a project: fields, rules, access',
      examples: [
        'bsvc collection add posts --project shop --field title:String! --field views:Number=0',
        'bsvc collection rls posts --project shop --mode public-read',
        'bsvc collection list --project shop',
      ],
      commands: [
        command('add', 'register a collection', () => import('./collection/add.js')),
        command(
          'list',
          'list collections',
          oneOf(() => import('./collection.js'), 'list'),
        ),
        command(
          'show',
          'show fields and rules of a collection',
          oneOf(() => import('./collection.js'), 'show'),
        ),
        command('edit', 'change fields, indexes and the change log', () => import('./collection/edit.js')),
        command('rls', 'set who may access a collection: RLS or rules', () => import('./collection/rls.js')),
        command(
          'rename',
          'rename a collection',
          oneOf(() => import('./collection.js'), 'rename'),
        ),
        command(
          'drop',
          'drop a collection and its documents',
          oneOf(() => import('./collection.js'), 'drop'),
        ),
      ],
    },
    {
      name: 'schema',
      summary: 'all collections of a project as one file',
      examples: [
        'bsvc schema export --project shop --out schema.json',
        'bsvc schema apply schema.json --project shop --dry-run',
      ],
      commands: [
        command('export', 'write the collections of a project as JSON', () => import('./schema/export.js')),
        command('apply', 'make the collections of a project match a file', () => import('./schema/apply.js')),
      ],
    },
    {
      name: 'data',
      summary: 'documents: bulk import, export, queries',
      examples: [
        'bsvc data import posts posts.ndjson --project shop',
        'bsvc data query posts --project shop --filter status=live --limit 5',
      ],
      commands: [
        command('import', 'import documents or users from a file or another service', () => import('./data/import.js')),
        command('export', 'export documents as NDJSON, JSON or CSV', () => import('./data/export.js')),
        command('query', 'list, aggregate or watch documents', () => import('./data/query.js')),
        command('insert', 'insert a document', () => import('./data/insert.js')),
        command('update', 'change fields of one document, or of all that match', () => import('./data/update.js')),
        command('delete', 'move documents to the trash, or restore one', () => import('./data/delete.js')),
        command('batch', 'run several writes as one transaction', () => import('./data/batch.js')),
      ],
    },
    command('file', 'list uploaded files, delete one', () => import('./file.js')),
    {
      name: 'hook',
      summary: 'hooks: your code that runs before and after events',
      examples: [
        'bsvc hook add orders.create --project shop --url https://example.com/orders',
        'bsvc hook list --project shop',
        'bsvc hook test orders.create --project shop',
      ],
      commands: [
        command(
          'add',
          'call your code at an event',
          oneOf(() => import('./hook.js'), 'add'),
        ),
        command(
          'list',
          'list hooks with their last calls',
          oneOf(() => import('./hook.js'), 'list'),
        ),
        command(
          'remove',
          'remove a hook',
          oneOf(() => import('./hook.js'), 'remove'),
        ),
        command(
          'test',
          'call a hook or a schedule once and show the response',
          oneOf(() => import('./hook.js'), 'test'),
        ),
      ],
    },
    {
      name: 'schedule',
      summary: 'schedules: your code that runs at certain times',
      examples: [
        "bsvc schedule add nightly --project shop --cron '0 3 * * *' --tz Europe/Berlin --url https://example.com/nightly",
        'bsvc schedule list --project shop',
      ],
      commands: [
        command(
          'add',
          'call your code at certain times',
          oneOf(() => import('./schedule.js'), 'add'),
        ),
        command(
          'list',
          'list schedules with their last calls',
          oneOf(() => import('./schedule.js'), 'list'),
        ),
        command(
          'remove',
          'remove a schedule',
          oneOf(() => import('./schedule.js'), 'remove'),
        ),
      ],
    },
    {
      name: 'webhook',
      summary: 'webhooks: notify other services of changed documents',
      examples: [
        'bsvc webhook add --project shop --url https://example.com/hooks --events posts.insert',
        'bsvc webhook list --project shop',
        'bsvc webhook deliveries 665f1c2e9b1d8a0012ab34cd --project shop --state failed',
      ],
      commands: [
        command(
          'add',
          'register a webhook, shows its secret once',
          oneOf(() => import('./webhook.js'), 'add'),
        ),
        command(
          'list',
          'list webhooks',
          oneOf(() => import('./webhook.js'), 'list'),
        ),
        command(
          'edit',
          'change address or events, enable, disable',
          oneOf(() => import('./webhook.js'), 'edit'),
        ),
        command(
          'remove',
          'remove a webhook',
          oneOf(() => import('./webhook.js'), 'remove'),
        ),
        command(
          'test',
          'send test.ping and show the response',
          oneOf(() => import('./webhook.js'), 'test'),
        ),
        command(
          'deliveries',
          'list deliveries and attempts',
          oneOf(() => import('./webhook.js'), 'deliveries'),
        ),
        command(
          'replay',
          'send a delivery again',
          oneOf(() => import('./webhook.js'), 'replay'),
        ),
        command(
          'rotate-secret',
          'create a new secret, the old one expires',
          oneOf(() => import('./webhook.js'), 'rotateSecret'),
        ),
      ],
    },
    command('generate', 'write types, API document or client for an app', () => import('./generate.js')),
    {
      name: 'agent',
      summary: 'files that tell coding agents how to build on bsvc',
      examples: ['bsvc agent install'],
      commands: [command('install', 'write AGENTS.md and a skill into an application', () => import('./agent.js'))],
    },
  ],
  Access: [
    {
      name: 'rules',
      summary: 'access rules: check them, explain them, test them',
      examples: ['bsvc rules check --project board --data', 'bsvc rules test rules.test.yaml'],
      commands: [
        command('check', 'check the rules of a project or a file', () => import('./rules/check.js')),
        command('explain', 'explain what rules come to for one user', () => import('./rules/explain.js')),
        command('test', 'test the rules of a bsvc.yaml with the cases of a file', () => import('./rules/test.js')),
      ],
    },
    {
      name: 'operator',
      summary: 'operators: people who use the console',
      examples: [
        'bsvc operator add --email ann@example.com --role viewer',
        'bsvc operator list',
        'bsvc operator token ann@example.com --quiet',
      ],
      commands: [
        command(
          'add',
          'add an operator, or set the password of one',
          oneOf(() => import('./operator.js'), 'add'),
        ),
        command(
          'list',
          'list operators',
          oneOf(() => import('./operator.js'), 'list'),
        ),
        command(
          'token',
          'create a token, list or revoke sessions and tokens',
          oneOf(() => import('./operator.js'), 'token'),
        ),
        command(
          'remove',
          'remove an operator',
          oneOf(() => import('./operator.js'), 'remove'),
        ),
      ],
    },
    {
      name: 'secrets',
      summary: 'keys that encrypt stored secrets and sign tokens',
      examples: ['bsvc secrets rotate', 'bsvc secrets rotate --tokens --project shop'],
      commands: [command('rotate', 'encrypt stored secrets with a new key', () => import('./secrets/rotate.js'))],
    },
  ],
  Users: [
    {
      name: 'user',
      summary: 'end users of a project',
      examples: [
        'bsvc user create --project shop --email ann@example.com',
        'bsvc user list --project shop',
        'bsvc user disable ann@example.com --project shop',
      ],
      commands: [
        command(
          'list',
          'list users, or show one with roles, MFA and identities',
          oneOf(() => import('./user.js'), 'list'),
        ),
        command(
          'create',
          'create an account, or invite a user by email',
          oneOf(() => import('./user.js'), 'create'),
        ),
        command(
          'update',
          'change roles, enable the account, reset MFA',
          oneOf(() => import('./user.js'), 'update'),
        ),
        command(
          'set-password',
          'set a user’s password',
          oneOf(() => import('./user.js'), 'setPassword'),
        ),
        command(
          'disable',
          'disable an account, its sessions end',
          oneOf(() => import('./user.js'), 'disable'),
        ),
        command(
          'sessions',
          'list or revoke a user’s sessions',
          oneOf(() => import('./user.js'), 'sessions'),
        ),
        command(
          'delete',
          'delete an account, with --erase all data of the user',
          oneOf(() => import('./user.js'), 'remove'),
        ),
        command('social', 'set up sign-in with Google, GitHub or another', () => import('./user/social.js')),
      ],
    },
    {
      name: 'mail',
      summary: 'mail of a project: test, logs, outbox, templates',
      examples: [
        'bsvc mail test --project shop --to me@example.com',
        'bsvc mail outbox',
        'bsvc mail template list --project shop',
      ],
      commands: [
        command('test', 'send a test mail', () => import('./mail/test.js')),
        command('logs', 'list the latest mails', () => import('./mail/logs.js')),
        command('outbox', 'show mails that were stored instead of sent', () => import('./mail/outbox.js')),
        {
          name: 'template',
          summary: 'templates of a project',
          examples: ['bsvc mail template set welcome --project shop --subject "Hello {{name}}" --text welcome.txt'],
          commands: [
            command(
              'list',
              'list templates, or show one',
              oneOf(() => import('./mail-template.js'), 'list'),
            ),
            command(
              'set',
              'store or replace a template',
              oneOf(() => import('./mail-template.js'), 'set'),
            ),
            command(
              'remove',
              'remove a template of the project',
              oneOf(() => import('./mail-template.js'), 'remove'),
            ),
          ],
        },
      ],
    },
    {
      name: 'byok',
      summary: 'a project’s own mail and storage credentials',
      examples: ['bsvc byok set --project shop --mail-key-stdin < key.txt', 'bsvc byok show --project shop'],
      commands: [
        command(
          'set',
          'store the project’s own mail provider key',
          oneOf(() => import('./byok.js'), 'set'),
        ),
        command(
          'show',
          'show the credentials, masked',
          oneOf(() => import('./byok.js'), 'show'),
        ),
        command(
          'clear',
          'remove the credentials',
          oneOf(() => import('./byok.js'), 'clear'),
        ),
        {
          name: 'bucket',
          summary: 'a project’s own bucket for files',
          examples: ['bsvc byok bucket show --project shop', 'bsvc byok bucket show --project shop --check'],
          commands: [
            command(
              'set',
              'store new files in the project’s own bucket',
              oneOf(() => import('./byok-bucket.js'), 'set'),
            ),
            command(
              'show',
              'show or check the bucket, set its CORS rules',
              oneOf(() => import('./byok-bucket.js'), 'show'),
            ),
            command(
              'clear',
              'remove the bucket',
              oneOf(() => import('./byok-bucket.js'), 'clear'),
            ),
          ],
        },
      ],
    },
  ],
  Operate: [
    command('doctor', 'check the installation, repair a damaged database', () => import('./doctor.js')),
    command('settings', 'list every setting, its value and where it came from', () => import('./settings.js')),
    command('worker', 'run background jobs and schedules only', () => import('./worker.js')),
    {
      name: 'service',
      summary: 'run bsvc under systemd',
      examples: ['bsvc service install --print', 'bsvc service install --worker'],
      commands: [command('install', 'write systemd units for the server', () => import('./service/install.js'))],
    },
    command('migrate', 'run pending migrations, or list them', () => import('./migrate.js')),
    command('backup', 'back up everything, while serving; list backups', () => import('./backup.js')),
    command('restore', 'restore from a backup', () => import('./restore.js')),
    command('move-to', 'copy the embedded database to a MongoDB', () => import('./move-to.js')),
    command('jobs', 'list background jobs, retry failed ones', () => import('./jobs.js')),
    command('audit', 'show the audit log', () => import('./audit.js')),
  ],
};

export const COMMANDS: readonly CommandNode[] = Object.values(GROUPS).flat();
