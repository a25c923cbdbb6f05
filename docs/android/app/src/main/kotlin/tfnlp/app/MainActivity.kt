package tfnlp.app

import android.app.Activity
import android.os.Bundle
import android.view.View
import android.widget.Button
import android.widget.CheckBox
import android.widget.EditText
import android.widget.TextView
import java.util.concurrent.Executors

/** One screen: a text, or two, and what the model says of it. */
class MainActivity : Activity() {
    private val worker = Executors.newSingleThreadExecutor()
    private var model: PhoneModel? = null // of the worker's thread

    override fun onCreate(savedInstanceState: Bundle?) {
        super.onCreate(savedInstanceState)
        setContentView(R.layout.main)
        findViewById<Button>(R.id.run).setOnClickListener { answer() }
        inBackground({ PhoneModel(applicationContext).also { model = it } }, ::ready)
    }

    private fun ready(model: PhoneModel) {
        val second = findViewById<EditText>(R.id.second)
        findViewById<CheckBox>(R.id.by_mediapipe).visibility = visibility(model.runsInMediaPipe)
        second.visibility = visibility(model.readsPairs)
        if (model.answersQuestions) {
            findViewById<EditText>(R.id.text).setHint(R.string.question)
            second.setHint(R.string.text)
        }
        findViewById<Button>(R.id.run).isEnabled = true
        show("")
    }

    private fun answer() {
        val text = findViewById<EditText>(R.id.text).text.toString()
        val second = findViewById<EditText>(R.id.second)
        val secondText = if (second.visibility == View.VISIBLE) second.text.toString() else null
        val byMediaPipe = findViewById<CheckBox>(R.id.by_mediapipe).isChecked
        inBackground({ checkNotNull(model).answer(text, secondText, byMediaPipe) }, ::show)
    }

    private fun <T> inBackground(work: () -> T, show: (T) -> Unit) = worker.execute {
        val result = runCatching(work)
        runOnUiThread { result.onSuccess(show).onFailure { show(it.message ?: it.toString()) } }
    }

    private fun show(answer: String) {
        findViewById<TextView>(R.id.answer).text = answer
    }

    private fun visibility(isThere: Boolean) = if (isThere) View.VISIBLE else View.GONE

    override fun onDestroy() {
        worker.execute { model?.close() }
        worker.shutdown()
        super.onDestroy()
    }
}
