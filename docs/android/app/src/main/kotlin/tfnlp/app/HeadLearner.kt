package tfnlp.app

import java.io.File
import org.tensorflow.lite.Interpreter
import tfnlp.ModelFile
import tfnlp.Row
import tfnlp.Rows

/**
 * Classifier whose last layer learns from what the user corrects: a file of `export_tflite --trainable_head`.
 *
 * `labels` are those of the file, and new ones behind them, which start from zeros. The weights `kernel`, of a
 * row for each feature, and `bias` go in and come out of the file, so that the app keeps them as it likes.
 * `Interpreter` resizes inputs to their arrays, which `CompiledModel` of Kotlin does not.
 */
class HeadLearner(path: File, file: ModelFile, private val labels: List<String>) : AutoCloseable {
    private val interpreter = Interpreter(path)
    private val rows = Rows(file.tokenizer, file.longest)
    private val width = interpreter.getOutputTensorFromSignature("features", "text_features").shape().last()

    var kernel = matrix(width, file.labels.size)
    var bias = FloatArray(file.labels.size)

    init {
        run("start_head", mapOf("factor" to floatArrayOf(1f)), mapOf("kernel" to kernel, "bias" to bias))
        kernel = kernel.map { it.copyOf(labels.size) }.toTypedArray()
        bias = bias.copyOf(labels.size)
    }

    /** Take steps of gradient descent on all texts at once, and return the loss before the last one. */
    fun learn(texts: List<String>, labelsOfTexts: List<String>, steps: Int, learningRate: Float = 1f): Float {
        val features = texts.map { features(rows.single(it)) }.toTypedArray()
        val targets = labelsOfTexts.map { label -> FloatArray(labels.size) { if (labels[it] == label) 1f else 0f } }
        val fixed = mapOf(
            "features" to features, "targets" to targets.toTypedArray(), "learning_rate" to floatArrayOf(learningRate),
        )
        val loss = FloatArray(1)
        repeat(steps) {
            val next = mapOf("kernel" to matrix(width, labels.size), "bias" to FloatArray(labels.size), "loss" to loss)
            run("train_head", fixed + mapOf("kernel" to kernel, "bias" to bias), next)
            @Suppress("UNCHECKED_CAST")
            kernel = next.getValue("kernel") as Array<FloatArray>
            bias = next.getValue("bias") as FloatArray
        }
        return loss[0]
    }

    /** Return the probability of each label. */
    fun classify(text: String): FloatArray {
        val probability = matrix(1, labels.size)
        val inputs = mapOf("features" to arrayOf(features(rows.single(text))), "kernel" to kernel, "bias" to bias)
        run("score_features", inputs, mapOf("probability" to probability))
        return probability[0]
    }

    private fun features(row: Row): FloatArray {
        val features = matrix(1, width)
        val inputs = mapOf("ids" to row.ids, "mask" to IntArray(row.ids.size) { 1 }, "segment_ids" to row.segmentIds)
        run("text_features", inputs.mapValues { arrayOf(it.value) }, mapOf("features" to features))
        return features[0]
    }

    private fun matrix(height: Int, width: Int) = Array(height) { FloatArray(width) }

    private fun run(signature: String, inputs: Map<String, Any>, outputs: Map<String, Any>) =
        interpreter.runSignature(inputs, outputs, signature)

    override fun close() = interpreter.close()
}
