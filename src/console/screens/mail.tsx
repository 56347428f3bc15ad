import { useState } from 'preact/hooks';
import { api, queryOf } from '../api.js';
import { moment, number } from '../format.js';
import { useLoad } from '../load.js';
import { Commands, quote, say, Trouble, useAction } from '../parts/basics.js';
import { Filters } from '../parts/filters.js';
import { Field, Form } from '../parts/form.js';
import { Table } from '../parts/table.js';
import { linkHere, place } from '../routes.js';
import { mayChange, project } from '../session.js';

interface MailLog {
  id: string;
  to: string | string[];
  subject: string;
  status: string;
  reason?: string | null;
  sentAt: string;
}

const STATUSES = ['queued', 'sent', 'delivered', 'bounced', 'complained', 'failed'].map(
  (each) => [each, each] as const,
);
const BAD = new Set(['bounced', 'complained', 'failed']);

export function Mail() {
  const { parts, query } = place.value;
  const base = `/api/projects/${parts[1] ?? ''}/mail`;
  const page = Number(query.get('page') ?? 1) || 1;
  const [status, to] = [query.get('status') ?? '', query.get('to') ?? ''];
  const path = `${base}/logs${queryOf({ status, to, page: page > 1 ? page : null })}`;
  const { data, error, loading, reload } = useLoad<{ items: MailLog[]; total: number; page: number; limit: number }>(
    path,
  );
  const named = quote(project.value?.name ?? '');
  return (
    <>
      <h1>Mail</h1>
      <Filters
        fields={[
          { name: 'to', label: 'To' },
          { name: 'status', label: 'Status', choices: STATUSES },
        ]}
      />
      <Trouble error={error} onRetry={reload} />
      <Table
        label="Mails"
        loading={loading}
        rows={data?.items ?? null}
        keyOf={({ id }) => id}
        empty="No mails."
        columns={[
          { name: 'To', show: (mail) => [mail.to].flat().join(', ') },
          { name: 'Subject', show: ({ subject }) => subject },
          { name: 'Status', show: (mail) => <span class={BAD.has(mail.status) ? 'bad' : ''}>{mail.status}</span> },
          { name: 'Why', show: ({ reason }) => reason ?? '' },
          { name: 'At', show: ({ sentAt }) => moment(sentAt) },
        ]}
      />
      <p class="row">
        {page > 1 && <a href={linkHere({ page: page === 2 ? null : String(page - 1) })}>← Newer</a>}
        {data && data.page * data.limit < data.total && <a href={linkHere({ page: String(page + 1) })}>Older →</a>}
        {data && (
          <span class="muted">
            {number(data.total)} {data.total === 1 ? 'mail' : 'mails'}
          </span>
        )}
      </p>
      <Commands
        cli={`bsvc mail logs --project ${named}${status && ` --status ${status}`}${to && ` --to ${quote(to)}`}`}
        path={path}
      />
      {mayChange.value && <TestMail base={base} named={named} onSent={reload} />}
    </>
  );
}

function TestMail({ base, named, onSent }: { base: string; named: string; onSent: () => void }) {
  const [to, setTo] = useState('');
  const [busy, send, error] = useAction(async () => {
    await api('POST', `${base}/test`, { to });
    say(`A test mail to ${to} is on its way`);
    onSent();
  });
  return (
    <>
      <h2>Test mail</h2>
      <Form class="row" onSubmit={() => void send()}>
        <Field label="To" type="email" required value={to} onText={setTo} />
        <button disabled={busy}>Send</button>
      </Form>
      <Trouble error={error} />
      <Commands
        cli={`bsvc mail test --to ${quote(to || 'me@example.com')} --project ${named}`}
        method="POST"
        path={`${base}/test`}
        body={{ to: to || 'me@example.com' }}
      />
    </>
  );
}
