import { useState } from 'preact/hooks';
import { api } from '../../api.js';
import { Dialog, say, Trouble, useAction } from '../../parts/basics.js';
import { Form, PasswordField } from '../../parts/form.js';

export function SetPassword({ path, onClose, onDone }: { path: string; onClose: () => void; onDone: () => void }) {
  const [password, setPassword] = useState('');
  const [busy, save, refused] = useAction(async () => {
    await api('POST', `${path}/set-password`, { password });
    say('The password is set; every session has ended');
    onClose();
    onDone();
  });
  return (
    <Dialog title="Set the password" onClose={onClose}>
      <Form onSubmit={() => void save()}>
        <p>It ends all sessions of the user, who gets no mail about it.</p>
        <PasswordField label="New password" isNew value={password} onText={setPassword} />
        <Trouble error={refused} />
        <button class="primary" disabled={busy}>
          Set the password
        </button>
      </Form>
    </Dialog>
  );
}
